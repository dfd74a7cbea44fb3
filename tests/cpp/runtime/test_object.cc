#include <gtest/gtest.h>
#include <tvm/runtime/object.h>

namespace {

using namespace tvm;

class AnimalNode : public Object {
 public:
  int legs = 4;
  TVM_DECLARE_OBJECT(AnimalNode, Object, "test.Animal");
};
class Animal : public ObjectRef {
 public:
  explicit Animal(int legs) {
    auto node = make_object<AnimalNode>();
    node->legs = legs;
    data_ = std::move(node);
  }
  TVM_DEFINE_REF_COW(Animal, ObjectRef, AnimalNode);
};

class BirdNode : public AnimalNode {
 public:
  static inline int alive = 0;
  BirdNode() { ++alive; }
  ~BirdNode() override { --alive; }
  TVM_DECLARE_OBJECT(BirdNode, AnimalNode, "test.Bird");
};
class Bird : public Animal {
 public:
  TVM_DEFINE_REF(Bird, Animal, BirdNode);
};

class NeverMadeNode : public BirdNode {
 public:
  TVM_DECLARE_OBJECT(NeverMadeNode, BirdNode, "test.NeverMade");
};

TEST(Object, SubtypeTestFollowsTheDeclaredTree) {
  ObjectRef bird{ObjectPtr<Object>(make_object<BirdNode>())};
  EXPECT_NE(bird.as<BirdNode>(), nullptr);
  EXPECT_NE(bird.as<AnimalNode>(), nullptr);
  EXPECT_NE(bird.as<Object>(), nullptr);
  EXPECT_EQ(Animal(4).as<BirdNode>(), nullptr);
}

TEST(Object, TypeThatIsOnlyDeclaredGetsItsIndexWhenAsked) {
  EXPECT_EQ(NeverMadeNode::StaticTypeInfo()->parent, BirdNode::StaticTypeInfo());
  EXPECT_EQ(runtime::TypeInfo::FromIndex(NeverMadeNode::RuntimeTypeIndex())->key, "test.NeverMade");
}

TEST(Object, LastReferenceDestroysTheObject) {
  int before = BirdNode::alive;
  {
    Bird a{ObjectPtr<Object>(make_object<BirdNode>())};
    Bird b = a;
    EXPECT_EQ(a.use_count(), 2);
    EXPECT_FALSE(a.unique());
    EXPECT_EQ(BirdNode::alive, before + 1);
  }
  EXPECT_EQ(BirdNode::alive, before);
}

TEST(Object, GetRefSharesTheObject) {
  Animal a(2);
  Animal b = GetRef<Animal>(a.get());
  EXPECT_TRUE(a.same_as(b));
  EXPECT_EQ(a.use_count(), 2);
}

TEST(Object, CopyOnWriteCopiesOnlyWhatIsShared) {
  Animal a(2);
  const AnimalNode* node = a.get();
  a.CopyOnWrite()->legs = 3;
  EXPECT_EQ(a.get(), node);
  Animal b = a;
  b.CopyOnWrite()->legs = 5;
  EXPECT_EQ(a->legs, 3);
  EXPECT_EQ(b->legs, 5);
}

TEST(Object, DowncastNamesBothTypes) {
  ObjectRef animal = Animal(4);
  EXPECT_TRUE(Downcast<Animal>(animal).same_as(animal));
  EXPECT_FALSE(Downcast<Bird>(ObjectRef()).defined());
  try {
    Downcast<Bird>(animal);
    FAIL() << "an animal is not a bird";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "TypeError");
    EXPECT_EQ(error.message(), "Downcast: expected test.Bird, got test.Animal");
  }
}

}  // namespace
