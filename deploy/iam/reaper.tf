# Made by `reaperd iam-policy --role reaper --format terraform`.

resource "aws_iam_policy" "reaperd_reaper" {
  name        = "reaperd-prod-eu-reaper"
  description = "reaperd: look everywhere, terminate what carries the tag of this deployment"

  policy = jsonencode({
    "Version" : "2012-10-17",
    "Statement" : [
      {
        "Sid" : "Look",
        "Effect" : "Allow",
        "Action" : [
          "ec2:DescribeAvailabilityZones",
          "ec2:DescribeFleets",
          "ec2:DescribeInstanceStatus",
          "ec2:DescribeInstances",
          "ec2:DescribeRegions",
          "ec2:DescribeSpotFleetRequests",
          "ec2:DescribeSpotInstanceRequests",
          "sts:GetCallerIdentity"
        ],
        "Resource" : "*"
      },
      {
        "Sid" : "TerminateOurs",
        "Effect" : "Allow",
        "Action" : [
          "ec2:TerminateInstances"
        ],
        "Resource" : [
          "arn:aws:ec2:*:111111111111:instance/*"
        ],
        "Condition" : {
          "StringEquals" : {
            "aws:ResourceTag/reaperd:owner" : "prod-eu",
            "ec2:Region" : [
              "eu-west-1",
              "us-east-1"
            ]
          }
        }
      },
      {
        "Sid" : "CancelWhatWouldLaunchOursAgain",
        "Effect" : "Allow",
        "Action" : [
          "ec2:CancelSpotInstanceRequests"
        ],
        "Resource" : [
          "arn:aws:ec2:*:111111111111:spot-instances-request/*"
        ],
        "Condition" : {
          "StringEquals" : {
            "aws:ResourceTag/reaperd:owner" : "prod-eu",
            "ec2:Region" : [
              "eu-west-1",
              "us-east-1"
            ]
          }
        }
      },
      {
        "Sid" : "EndNothingThatIsNotOurs",
        "Effect" : "Deny",
        "Action" : [
          "ec2:CancelSpotInstanceRequests",
          "ec2:TerminateInstances"
        ],
        "Resource" : "*",
        "Condition" : {
          "StringNotEquals" : {
            "aws:ResourceTag/reaperd:owner" : "prod-eu"
          }
        }
      },
      {
        "Sid" : "NeverTagOrUnprotect",
        "Effect" : "Deny",
        "Action" : [
          "ec2:CreateTags",
          "ec2:DeleteTags",
          "ec2:ModifyInstanceAttribute"
        ],
        "Resource" : "*"
      }
    ]
  })
}
